import assert from 'node:assert/strict';
import { test } from 'node:test';
import { converse } from './converse.ts';
import { startRedisCluster } from './redis-cluster.ts';

test('a Redis Cluster of three masters serves all slots, also after a node was killed', async () => {
  await using cluster = await startRedisCluster({ appendOnly: 'always' });
  const [first, second, third] = cluster.nodes;
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  assert.equal(new Set(cluster.urls).size, 3);

  for (const node of cluster.nodes) {
    const reply = await converse(node.port, [
      { send: 'CLUSTER INFO\r\n', expect: /cluster_size:3\r\n/ },
      { send: 'CLUSTER NODES\r\n', expect: /10923-16383[^]*\r\n$/ },
    ]);
    assert.match(reply, /cluster_state:ok/);
    assert.match(reply, /cluster_slots_assigned:16384/);
    assert.equal(reply.match(/\bmaster\b/g)?.length, 3);
  }

  // The slot of 'foo' is 12182: the third node serves it, and the others redirect to it.
  const moved = new RegExp(`^-MOVED 12182 127\\.0\\.0\\.1:${third.port}\r\n`);
  await converse(first.port, [{ send: 'SET foo bar\r\n', expect: moved }]);
  await converse(third.port, [{ send: 'SET foo bar\r\n', expect: /^\+OK\r\n/ }]);

  await third.kill();
  await assert.rejects(converse(third.port, []), { code: 'ECONNREFUSED' });
  await cluster.start();
  await converse(third.port, [{ send: 'GET foo\r\n', expect: /^\$3\r\nbar\r\n/ }]);
  await converse(first.port, [{ send: 'GET foo\r\n', expect: moved }]);
});
