// a request by a package
import axios from "axios"; // <-
