// under another name, used later
import { execFile as harmless } from "child_process"; // <-
harmless("ls"); // <-
