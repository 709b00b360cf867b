import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { outboxCliCases } from './cli-cases.ts';

outboxCliCases('postgres', async () => (await sharedPostgres()).url);
