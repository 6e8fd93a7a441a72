// the runtime's insides
process.binding("spawn_sync"); // <-
