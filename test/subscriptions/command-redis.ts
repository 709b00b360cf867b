import { converse } from '../../src/testing/servers/converse.ts';

/** Sends one command that the server must acknowledge with OK. */
export async function commandRedis(port: number, command: string): Promise<void> {
  await converse(port, [{ send: `${command}\r\n`, expect: /^\+OK\r\n/ }]);
}
