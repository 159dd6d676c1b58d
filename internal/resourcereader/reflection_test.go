package resourcereader

import (
	"context"
	"strings"
	"testing"

	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"proffer.dev/proffer/test"
)

func TestReflectionShowsTheFormThatIsServed(t *testing.T) {
	for f, answer := range map[Form]protoreflect.FullName{Pools: "PoolResourceList", Flat: "flat.ResourceList"} {
		t.Run(f.String(), func(t *testing.T) {
			r := start(t, published(nil), form(f))
			ctx, cancel := context.WithCancel(timeout(t))
			defer cancel()
			stream, err := reflectionv1.NewServerReflectionClient(r.dial(t)).ServerReflectionInfo(ctx)
			test.Must(t, err)
			test.Must(t, stream.Send(&reflectionv1.ServerReflectionRequest{
				MessageRequest: &reflectionv1.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "resource_reader"},
			}))
			got, err := stream.Recv()
			if err != nil || got.GetErrorResponse() != nil {
				t.Fatalf("%v, %v", got.GetErrorResponse(), err)
			}
			set := &descriptorpb.FileDescriptorSet{}
			for _, raw := range got.GetFileDescriptorResponse().GetFileDescriptorProto() {
				file := &descriptorpb.FileDescriptorProto{}
				test.Must(t, proto.Unmarshal(raw, file))
				set.File = append(set.File, file)
			}
			// The files are complete and consistent.
			files, err := protodesc.NewFiles(set)
			test.Must(t, err)
			d, err := files.FindDescriptorByName("resource_reader")
			test.Must(t, err)
			methods := d.(protoreflect.ServiceDescriptor).Methods()
			if got := methods.ByName("ReadResources").Output().FullName(); got != answer {
				t.Errorf("ReadResources returns %s, want %s", got, answer)
			}
			if got := methods.Len(); got != 3 {
				t.Errorf("%d methods, want 3", got)
			}
			test.Must(t, stream.Send(&reflectionv1.ServerReflectionRequest{
				MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{},
			}))
			got, err = stream.Recv()
			test.Must(t, err)
			var names []string
			for _, s := range got.GetListServicesResponse().GetService() {
				names = append(names, s.GetName())
			}
			if got := strings.Join(names, " "); !strings.Contains(got, "resource_reader") || strings.Contains(got, "flat.") {
				t.Errorf("services: %s", got)
			}
		})
	}
}
