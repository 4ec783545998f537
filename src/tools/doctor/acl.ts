/** What a server's user needs, and no more. */

const COMMANDS = `+auth +hello +select +info +role +time +client|setname +client|list +fcall +function|list
+function|load +eval +evalsha
+get +mget +set +incrby +del +unlink +exists +persist +pexpire +pttl +type +rename
+hget +hset +hsetnx +hdel +hexists +hgetall +hkeys +hlen +hmget +hincrby +hscan +hstrlen
+llen +lpop +lpush +lrange +lrem +lset +ltrim +rpop +rpush
+sadd +scard +sismember +smembers +smismember +spop +srem +sscan
+xadd +xdel +xinfo|stream +xrange +xread +xrevrange +xtrim
+spublish +ssubscribe +sunsubscribe +pubsub|shardchannels
+zadd +zcard +zcount +zmscore +zrange +zrem +zscore +zremrangebyrank +zrangebyscore +zrevrange +zrevrangebyscore +bzpopmin`;

/** The parts behind `ACL SETUSER <name>` for the queues of a prefix. */
export function aclRule(prefix: string, { cluster = false } = {}): string[] {
  // the second: those whose names, or whose prefix, bring a hash tag
  const keys = /\{[^}]+\}/.test(prefix) ? [] : [`~{${prefix}:*}:*`];
  keys.push(`~${prefix}:*:chasqui:*`);
  // by which workers are told of work
  const channels = keys.map((key) => `&${key.slice(1).replace(/\*$/, 'worker:*')}`);
  return ['on', '>secret', ...keys, ...channels, ...COMMANDS.split(/\s+/), ...(cluster ? ['+cluster|slots'] : [])];
}
