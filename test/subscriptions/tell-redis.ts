import { converse } from '../../src/testing/servers/converse.ts';

/** One command that the server answers with OK. */
export async function tellRedis(port: number, command: string): Promise<void> {
  await converse(port, [{ send: `${command}\r\n`, expect: /^\+OK\r\n/ }]);
}
