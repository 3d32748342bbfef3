package jwt

// Thumbprint is for the known answers of RFC 7638.
var Thumbprint = thumbprint
