#!/bin/sh
# A browser for the tests of the page: the one that is there, else Debian's, else Playwright's own.
# $1: the folder of the environment's programs.
for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null 2>&1 && exit 0
done
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    apt-get update -qq >/dev/null 2>&1
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium \
        >/dev/null 2>&1 && exit 0
fi
"$1/playwright" install chromium && exit 0
echo "no browser could be installed: the tests of the page are skipped" >&2
