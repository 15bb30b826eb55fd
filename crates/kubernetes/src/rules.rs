//! Kubernetes' rules of where a pod may go, exactly as kube-scheduler has them: pure functions from objects to
//! canonical, comparable terms. The border turns those into what the core knows.

pub mod division;
pub mod load;
pub mod place;
mod ports;
pub mod quantity;
mod refusal;
pub mod request;
pub mod selector;
pub mod storage;
pub mod terms;
pub mod tolerations;
pub mod traits;

pub use refusal::Refusal;
