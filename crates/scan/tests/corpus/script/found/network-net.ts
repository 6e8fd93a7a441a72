// a socket
import net from "net"; // <-
net.connect(80);
