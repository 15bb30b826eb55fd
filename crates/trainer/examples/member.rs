use std::sync::Arc;
use metronome_trainer::{Place, Task, train};
fn main() {
    let task: Task = serde_json::from_slice(&std::fs::read(std::env::args().nth(1).unwrap()).unwrap()).unwrap();
    let place = Place::read(|name| std::env::var(name).ok()).unwrap();
    println!("{:?}", train(&task, &place, &Arc::default()));
}
