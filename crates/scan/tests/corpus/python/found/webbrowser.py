# starts a browser
import webbrowser
webbrowser.open("file:///x")  # <-
