module example.com/custom-monitor

go 1.26.0

require (
	google.golang.org/grpc v1.85.0
	proffer.dev/proffer v0.0.0
)

require (
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/text v0.44.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261110000943-09e21b237f2c // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

// Until Proffer has a release, the module of this repository.
replace proffer.dev/proffer => ../..
