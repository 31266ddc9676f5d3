#!/bin/bash
# Starts VersityGW, a server of S3's interface on port 7070 that stores its objects below /data. It
# creates the buckets that S3_BUCKETS names. With ROOT_ACCESS_KEY and ROOT_SECRET_KEY every request is
# signed with these keys. Without them writers sign with `streamquake`, which is both keys, and
# everyone may read.
set -euo pipefail

if [ "$1" != versitygw ]; then exec "$@"; fi
shift

public=
if [ -z "${ROOT_ACCESS_KEY:-}" ]; then
  export ROOT_ACCESS_KEY=streamquake ROOT_SECRET_KEY=streamquake
  public=yes
fi
for bucket in ${S3_BUCKETS:-}; do
  mkdir -p "/data/$bucket"
  if [ -n "$public" ]; then
    # Where the server itself stores the policy of a bucket.
    setfattr -n user.policy -v '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow",
      "Principal": "*", "Action": ["s3:GetObject", "s3:ListBucket"],
      "Resource": ["arn:aws:s3:::'"$bucket"'", "arn:aws:s3:::'"$bucket"'/*"]}]}' "/data/$bucket"
  fi
done
exec versitygw --port :7070 --health /health --quiet "$@" posix /data
