import { startNats } from '../../testing/servers/nats-server.ts';
import { testSeveralProcesses } from '../../testing/support/topics/several-processes.ts';

// Not the shared server: its other tests would read these topics too.
testSeveralProcesses('NATS', () => startNats());
