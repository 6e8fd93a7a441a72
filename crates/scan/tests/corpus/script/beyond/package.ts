// an installed package that starts processes itself
import { start } from "some-package";
start("ls");
