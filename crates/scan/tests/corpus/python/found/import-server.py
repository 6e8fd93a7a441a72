# opens a port
import http.server  # <-
