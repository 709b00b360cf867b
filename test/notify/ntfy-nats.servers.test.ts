import { startNats } from '../../src/testing/servers/nats-server.ts';
import { testTogether } from './ntfy-together.ts';

// Not the shared server: its other tests would read these topics too.
testTogether('NATS', () => startNats());
