import { startNats } from '../../src/testing/servers/nats-server.ts';
import { testOrderOfBus, testTogether } from './ntfy-together.ts';

// A server for each: other tests of a shared one would read these topics too.
testTogether('NATS', () => startNats());
testOrderOfBus('NATS', () => startNats());
