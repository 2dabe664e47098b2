package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/url"
)

// Account is the one account that the interface knows.
type Account struct{ User, Password string }

// check lets a request in, or says why not as ClickHouse does. Credentials come
// in headers, as basic authentication or in the URL; two kinds at once are
// refused.
func (a Account) check(r *http.Request, values url.Values) error {
	user, password := r.Header.Get("X-ClickHouse-User"), r.Header.Get("X-ClickHouse-Key")
	byHeader := user != "" || password != ""
	byURL := values.Has("user") || values.Has("password")
	authorization := r.Header.Get("Authorization")
	if byHeader && authorization != "" || authorization != "" && byURL || byHeader && byURL {
		return codeAuthentication.errorf("Invalid authentication: it is not allowed to use more than one of X-ClickHouse-User/X-ClickHouse-Key headers, Authorization HTTP header and authentication via parameters")
	}
	switch {
	case authorization != "":
		var ok bool
		if user, password, ok = r.BasicAuth(); !ok {
			return codeAuthentication.errorf("Invalid authentication: only the 'Basic' HTTP Authorization scheme is supported")
		}
	case byURL:
		user, password = values.Get("user"), values.Get("password")
	}
	if user == "" {
		user = "default"
	}
	if !equal(user, a.User) || !equal(password, a.Password) {
		return codeAuthentication.errorf("%s: Authentication failed: password is incorrect, or there is no user with such name", user)
	}
	return nil
}

// equal compares without telling by its time where two texts differ.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
