package monitor

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"proffer.dev/proffer/proto/resourcereader"
)

// start serves a monitor with the amounts of a file until the test ends.
func start(t *testing.T, text string) (*Monitor, string, resourcereader.ResourceReaderClient) {
	t.Helper()
	m, file := New(), filepath.Join(t.TempDir(), "amounts.json")
	write(t, m, file, text)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	resourcereader.RegisterResourceReaderServer(server, m)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return m, file, resourcereader.NewResourceReaderClient(conn)
}

func write(t *testing.T, m *Monitor, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.Load(file); err != nil {
		t.Fatal(err)
	}
}

// cpu returns the cpu that is answered for a consumer.
func cpu(t *testing.T, client resourcereader.ResourceReaderClient, id string) string {
	t.Helper()
	answer, err := client.ReadResources(t.Context(), &resourcereader.ClusterIdentity{ClusterID: id})
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetResourceLists()[0].GetResources()["cpu"].GetString_()
}

func TestEachConsumerHasItsAmountsOrThoseOfTheOthers(t *testing.T) {
	_, _, client := start(t, `{"": {"cpu": "2"}, "rome": {"cpu": "8"}}`)
	for id, want := range map[string]string{"rome": "8", "oslo": "2", "": "2"} {
		if got := cpu(t, client, id); got != want {
			t.Errorf("%q: got %s, want %s", id, got, want)
		}
	}
}

func TestAChangeOfTheFileIsNotified(t *testing.T) {
	m, file, client := start(t, `{"rome": {"cpu": "8"}}`)
	stream, err := client.Subscribe(t.Context(), &resourcereader.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	notified := make(chan error, 1)
	go func() {
		_, err := stream.Recv()
		notified <- err
	}()
	for i := 0; ; i++ { // The subscription may begin after the first changes.
		write(t, m, file, fmt.Sprintf(`{"rome": {"cpu": "%d"}}`, i))
		select {
		case err := <-notified:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}

func TestAConsumerThatIsGoneIsForgotten(t *testing.T) {
	m, _, client := start(t, `{"rome": {"cpu": "8"}}`)
	cpu(t, client, "rome")
	for range 2 {
		if _, err := client.RemoveCluster(t.Context(), &resourcereader.ClusterIdentity{ClusterID: "rome"}); err != nil {
			t.Fatal(err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.asked) > 0 {
		t.Errorf("still remembered: %v", m.asked)
	}
}

func TestAFileThatIsWrongChangesNothing(t *testing.T) {
	m, file, client := start(t, `{"rome": {"cpu": "8"}}`)
	if err := os.WriteFile(file, []byte("cpu: 8"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.Load(file); err == nil {
		t.Error("it is taken")
	}
	if got := cpu(t, client, "rome"); got != "8" {
		t.Errorf("got %s", got)
	}
}
