import { sharedPostgres } from '../../src/testing/servers/shared-servers.ts';
import { flowCases } from './flow-cases.ts';

flowCases('postgres', async () => ({ store: (await sharedPostgres()).url }));
