// Principals are defined one layer below, so that modules may know who asks.

export {
  checkAccess,
  notAuthenticated,
  tenantFor,
  type Access,
  type Authenticate,
  type Principal,
} from '../../platform/principal.ts';
