package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	wire "proffer.dev/proffer/proto/resourcereader"
)

// subscriptions are streams of Subscribe on one connection, which are read frame by frame. Waking a
// goroutine for each stream, as grpc-go's client does, would take as much CPU as the server takes,
// on the same cores.
type subscriptions struct {
	net.Conn
	framer  *http2.Framer
	streams int
}

// prefix is the length of the header of a gRPC message: a compression flag and the length.
const prefix = 5

// openSubscriptions opens so many streams. Their flow-control windows of 1 MiB are never extended,
// so they bound the messages of each stream.
func openSubscriptions(ctx context.Context, address string, streams int) (*subscriptions, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	s := &subscriptions{conn, http2.NewFramer(conn, bufio.NewReaderSize(conn, 64<<10)), streams}
	s.framer.SetReuseFrames()
	if err := s.open(address); err != nil {
		return nil, errors.Join(fmt.Errorf("opening streams: %w", err), conn.Close())
	}
	return s, nil
}

func (s *subscriptions) open(address string) error {
	const window = 1 << 20
	if _, err := s.Write([]byte(http2.ClientPreface)); err != nil {
		return err
	}
	if err := s.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}); err != nil {
		return err
	}
	if err := s.framer.WriteWindowUpdate(0, uint32(s.streams)*window); err != nil {
		return err
	}
	var block bytes.Buffer
	headers := hpack.NewEncoder(&block)
	for i := range s.streams {
		block.Reset()
		for _, h := range [][2]string{
			{":method", "POST"}, {":scheme", "http"}, {":path", wire.ResourceReader_Subscribe_FullMethodName},
			{":authority", address},
			{"content-type", "application/grpc"}, {"te", "trailers"},
		} {
			if err := headers.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}); err != nil {
				return err
			}
		}
		id := uint32(2*i + 1) // clients use odd numbers
		request := http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true}
		if err := s.framer.WriteHeaders(request); err != nil {
			return err
		}
		if err := s.framer.WriteData(id, true, make([]byte, prefix)); err != nil {
			return err
		}
	}
	return nil
}

// each calls received with every message, numbering the streams in the order of their opening. It
// returns when the connection is closed, or at a frame that is neither a message nor a control
// frame.
func (s *subscriptions) each(received func(stream int, message []byte, at time.Time)) error {
	for {
		frame, err := s.framer.ReadFrame()
		at := time.Now()
		switch f := frame.(type) {
		case nil:
		case *http2.DataFrame:
			for data := f.Data(); len(data) > 0 && err == nil; {
				if len(data) < prefix || len(data)-prefix < int(binary.BigEndian.Uint32(data[1:])) {
					err = fmt.Errorf("stream %d: a message spans several frames", f.StreamID)
					break
				}
				end := prefix + int(binary.BigEndian.Uint32(data[1:]))
				received(int(f.StreamID/2), data[prefix:end], at)
				data = data[end:]
			}
		case *http2.SettingsFrame:
			if !f.IsAck() {
				err = s.framer.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				err = s.framer.WritePing(true, f.Data)
			}
		case *http2.HeadersFrame:
			if f.StreamEnded() {
				err = fmt.Errorf("stream %d ended", f.StreamID)
			}
		case *http2.RSTStreamFrame:
			err = fmt.Errorf("stream %d ended: %v", f.StreamID, f.ErrCode)
		case *http2.GoAwayFrame:
			err = fmt.Errorf("the server closed the connection: %v %s", f.ErrCode, f.DebugData())
		}
		if err != nil {
			return err
		}
	}
}
