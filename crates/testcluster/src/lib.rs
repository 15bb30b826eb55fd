//! Dev only: the real Kubernetes control plane on loopback, for tests.
