// Package trends keeps what pools and consumers had in the last 24 hours, one sample a minute, and says when a pool
// will be exhausted if it goes on as it did. It is pure: snapshots and times are values. What it keeps is
// bounded, of this process, and gone when that ends.
//
// A pool will be exhausted if what is committed of it reaches its capacity within 24 hours, at the slope of the line of
// least squares through the last 6 hours. So that one large grant is not taken for a trend, there must be an hour of
// samples, each half of them must have a quarter of the rise, and the line must explain at least 60% of the variance.
package trends
