"""The HTTPS port of the process: health, metrics, its configuration (spec 09 §7).

certificates     the server certificate, and the authorities of client certificates
authentication   the user: by certificate, a proxy's headers or a token; else anonymous
authorization    always-allowed paths, else the API server is asked
health           checks by name, and the text of their results
pages            /configz, /flagz, /statusz
application      paths to answers
server           the socket, and an end that waits for open requests
"""
