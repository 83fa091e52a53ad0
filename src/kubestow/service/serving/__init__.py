"""What the process says over HTTPS: health, metrics, its configuration (spec 09 §7).

certificates     what we present, and whose client certificates we accept
authentication   who is asking: a certificate, a proxy's headers, a token; else nobody
authorization    may they: always-allowed paths, else the API server is asked
health           checks by name, and how their outcome is told
pages            /configz, /flagz, /statusz
application      paths to answers
server           the socket, and an end without cutting anybody off
"""
