package main

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

// subscriptions are streams of Subscribe on one connection, which are read frame by frame: to wake a goroutine for each stream, as a client of
// grpc-go does, takes as long as the server takes for them, on the cores that the server needs too.
type subscriptions struct {
	net.Conn
	framer  *http2.Framer
	streams int
}

// prefix is what comes before each message of gRPC: whether it is compressed, and how long it is.
const prefix = 5

// openSubscriptions opens so many streams. What they are told in all is bounded by windows of 1 MiB for each, which are never opened again.
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
			{":method", "POST"}, {":scheme", "http"}, {":path", wire.ResourceReader_Subscribe_FullMethodName}, {":authority", address},
			{"content-type", "application/grpc"}, {"te", "trailers"},
		} {
			if err := headers.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}); err != nil {
				return err
			}
		}
		id := uint32(2*i + 1) // clients have the odd ones
		if err := s.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true}); err != nil {
			return err
		}
		if err := s.framer.WriteData(id, true, make([]byte, prefix)); err != nil {
			return err
		}
	}
	return nil
}

// each calls told with every message, by the order in which the streams were opened, until the connection is closed or something else than
// messages comes.
func (s *subscriptions) each(told func(stream int, message []byte, at time.Time)) error {
	for {
		frame, err := s.framer.ReadFrame()
		at := time.Now()
		switch f := frame.(type) {
		case nil:
		case *http2.DataFrame:
			for data := f.Data(); len(data) > 0 && err == nil; {
				if len(data) < prefix || len(data)-prefix < int(binary.BigEndian.Uint32(data[1:])) {
					err = fmt.Errorf("stream %d: a message in more than one frame", f.StreamID)
					break
				}
				end := prefix + int(binary.BigEndian.Uint32(data[1:]))
				told(int(f.StreamID/2), data[prefix:end], at)
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
				err = fmt.Errorf("stream %d has ended", f.StreamID)
			}
		case *http2.RSTStreamFrame:
			err = fmt.Errorf("stream %d has ended: %v", f.StreamID, f.ErrCode)
		case *http2.GoAwayFrame:
			err = fmt.Errorf("the server ends the connection: %v %s", f.ErrCode, f.DebugData())
		}
		if err != nil {
			return err
		}
	}
}
