import { claimCases } from './claim-cases.ts';
import { openPostgresRig } from './open-postgres-rig.ts';

claimCases('postgres', openPostgresRig);
