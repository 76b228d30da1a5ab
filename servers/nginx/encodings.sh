#!/bin/sh
# Starts nginx from the run folder and the configuration named, with brotli where its module is installed
# (Debian: libnginx-mod-http-brotli-filter); elsewhere `br` is answered without a coding.
set -eu
modules=$(nginx -V 2>&1 | tr ' ' '\n' | sed -n 's/^--modules-path=//p')
module=$modules/ngx_http_brotli_filter_module.so
if [ -e "$module" ]; then
    echo "load_module $module;" >"$1/module-brotli.conf"
    printf 'brotli on;\nbrotli_types text/plain;\n' >"$1/encoding-brotli.conf"
fi
exec nginx -e stderr -p "$1" -c "$2"
