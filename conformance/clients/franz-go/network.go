package main

import (
	"context"
	"net"
	"sync/atomic"
)

// network cuts a connection in place of every so many answers: what was asked has been done, and the client cannot know.
type network struct {
	every   int64
	answers atomic.Int64
	cuts    atomic.Int64
}

type connection struct {
	net.Conn
	network *network
}

func (n *network) dial(ctx context.Context, kind, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, kind, address)
	return connection{conn, n}, err
}

func (c connection) Read(into []byte) (int, error) {
	count, err := c.Conn.Read(into)
	if err == nil && c.network.answers.Add(1)%c.network.every == 0 {
		c.network.cuts.Add(1)
		c.Conn.Close()
		return 0, net.ErrClosed
	}
	return count, err
}
