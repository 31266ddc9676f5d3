//go:build tools

package versitygw

import _ "github.com/versity/versitygw/cmd/versitygw"
