#!/bin/sh
# The user has to exist before the unit can start, and the configuration is for it
# to read and for nobody to write but root. Nothing is started: at first there is
# nobody who could call.
set -e
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers gatehouse.conf
elif ! getent passwd gatehouse >/dev/null; then
	useradd --system --user-group --home-dir /var/lib/gatehouse --shell /usr/sbin/nologin gatehouse
fi
chgrp gatehouse /etc/gatehouse /etc/gatehouse/gatehouse.toml
chmod 0750 /etc/gatehouse
chmod 0640 /etc/gatehouse/gatehouse.toml
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart gatehouse.service || true
fi
