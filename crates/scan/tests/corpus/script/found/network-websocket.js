// a web socket
const socket = new WebSocket("ws://x"); // <-
