//! The whole scheduler against a real API server with simulated nodes.

mod changes;
mod crowd;
mod deadlines;
mod ecosystem;
mod faults;
mod gangs;
mod moves;
mod preemption;
mod queues;
mod restarts;
mod scheduler;
mod singles;
mod training;
mod trouble;
mod turns;
