import { startNats } from '../../src/testing/servers/nats-server.ts';
import { testOrderOfBus, testTogether } from './ntfy-together.ts';

// A server of its own: other tests of a shared one would read these topics too.
testTogether('NATS', () => startNats(), testOrderOfBus);
