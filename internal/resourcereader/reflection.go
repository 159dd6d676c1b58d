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

// registerReflection lets clients ask the server what it serves, with the messages of its form.
func registerReflection(s registrar, form Form) {
	options := reflection.ServerOptions{Services: s}
	if form == Flat {
		options.DescriptorResolver = flatResolver
	}
	reflectionv1.RegisterServerReflectionServer(s, reflection.NewServerV1(options))
	reflectionv1alpha.RegisterServerReflectionServer(s, reflection.NewServer(options))
}

// resolver looks into its own files before those of the program.
type resolver struct{ own *protoregistry.Files }

func (r resolver) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	if f, err := r.own.FindFileByPath(path); err == nil {
		return f, nil
	}
	return protoregistry.GlobalFiles.FindFileByPath(path)
}

func (r resolver) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	if d, err := r.own.FindDescriptorByName(name); err == nil {
		return d, nil
	}
	return protoregistry.GlobalFiles.FindDescriptorByName(name)
}

// flatResolver knows the service of the flat form under the name by which it is served. The program's own registry can hold only
// one service of that name.
var flatResolver = resolver{own: flatFiles()}

func flatFiles() *protoregistry.Files {
	original := flat.File_resourcereader_flat_flat_proto
	described := protodesc.ToFileDescriptorProto(original)
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name:       new("resourcereader/flat/resource_reader.proto"),
		Syntax:     described.Syntax,
		Dependency: append(described.GetDependency(), original.Path()),
		Service:    described.GetService(), // the types of its messages are fully qualified
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
