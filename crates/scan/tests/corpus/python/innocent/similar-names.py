# modules with similar names
import ossaudio
import sysconfigured
import codecs
import socketio
import subprocesses
