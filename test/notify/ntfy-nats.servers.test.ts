import { startNats } from '../../src/testing/servers/nats-server.ts';
import { testOrderOfBus, testTogether } from './ntfy-together.ts';

// Not the shared server: its other tests would read these topics too.
testTogether('NATS', () => startNats(), testOrderOfBus);
