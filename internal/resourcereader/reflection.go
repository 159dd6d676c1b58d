package resourcereader

import (
	"fmt"

	"google.golang.org/grpc/reflection"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"proffer.dev/proffer/proto/resourcereader/flat"
)

// registerReflection lets clients list the services, with the messages of the server's form.
func registerReflection(s countingServer, form Form) {
	options := reflection.ServerOptions{Services: s}
	if form == Flat {
		options.DescriptorResolver = flatResolver
	}
	reflectionv1.RegisterServerReflectionServer(s, reflection.NewServerV1(options))
	reflectionv1alpha.RegisterServerReflectionServer(s, reflection.NewServer(options))
}

// flatResolver describes the service of the flat form under the name by which it is served. The
// global registry can hold only one service of that name.
var flatResolver = resolver{own: flatFiles()}

// flatFiles returns a file that holds the service of the flat form without its package.
func flatFiles() *protoregistry.Files {
	generated := flat.File_resourcereader_flat_flat_proto
	described := protodesc.ToFileDescriptorProto(generated)
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name:       new("resourcereader/flat/resource_reader.proto"),
		Syntax:     described.Syntax,
		Dependency: append(described.GetDependency(), generated.Path()),
		Service:    described.GetService(), // The types of its messages are fully qualified.
	}, protoregistry.GlobalFiles)
	if err != nil {
		panic(fmt.Sprintf("resourcereader: describing the flat form: %v", err))
	}
	files := new(protoregistry.Files)
	if err := files.RegisterFile(file); err != nil {
		panic(fmt.Sprintf("resourcereader: describing the flat form: %v", err))
	}
	return files
}

// resolver looks into its own files before the global registry.
type resolver struct{ own *protoregistry.Files }

// FindFileByPath implements protodesc.Resolver.
func (r resolver) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	if f, err := r.own.FindFileByPath(path); err == nil {
		return f, nil
	}
	return protoregistry.GlobalFiles.FindFileByPath(path)
}

// FindDescriptorByName implements protodesc.Resolver.
func (r resolver) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	if d, err := r.own.FindDescriptorByName(name); err == nil {
		return d, nil
	}
	return protoregistry.GlobalFiles.FindDescriptorByName(name)
}
