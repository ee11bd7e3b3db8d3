#!/bin/sh
# An upgrade keeps the daemon running until it is started anew; a removal stops it.
# State, ledger and configuration stay.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now gatehouse.service || true
	fi
	;;
esac
