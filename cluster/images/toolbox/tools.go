//go:build tools

package toolbox

import _ "github.com/Shopify/toxiproxy/v2/cmd/server"
