// The frame of all views: navigation, search, connection and account.

import { Menu } from '@base-ui/react/menu';
import { useMutation } from '@tanstack/react-query';
import { Link, Outlet, useNavigate, useRouter } from '@tanstack/react-router';
import {
  ChevronDown,
  CircleHelp,
  Menu as MenuIcon,
  Monitor,
  Moon,
  Search,
  Sun,
  Waves,
  X,
} from 'lucide-react';
import { useEffect, useState } from 'react';
import { FailureToast } from './failure-toast.tsx';
import { call } from './lib/api.ts';
import { timeText } from './lib/format.ts';
import { focusFilter, useShortcuts } from './lib/keys.ts';
import { live, useLiveStatus } from './lib/live.ts';
import { useSession } from './lib/session.ts';
import { setTheme, useTheme, type Theme } from './lib/theme.ts';
import { Palette } from './palette.tsx';
import { cx, IconButton, Kbd } from './ui/parts.tsx';
import { Modal } from './ui/sheet.tsx';
import { consoleViews, viewsFor, type View } from './views.ts';

/** After the first view is shown. */
const preloadMs = 2_000;

export function Shell({ onSignedOut }: { readonly onSignedOut: () => void }) {
  const session = useSession();
  const navigate = useNavigate();
  const router = useRouter();
  const views = viewsFor(session);
  const [isPaletteOpen, setPaletteOpen] = useState(false);
  const [isHelpOpen, setHelpOpen] = useState(false);
  const [isNavOpen, setNavOpen] = useState(false);
  useEffect(() => {
    live.start();
    // So that a view opens without a connection, instead of an error page of the browser.
    const timer = setTimeout(() => {
      for (const { path } of consoleViews) void router.preloadRoute({ to: path });
    }, preloadMs);
    return () => {
      live.stop();
      clearTimeout(timer);
    };
  }, [router]);
  useShortcuts({
    'mod+k': () => setPaletteOpen(true),
    '/': () => setPaletteOpen(!focusFilter()),
    '?': () => setHelpOpen(true),
    ...Object.fromEntries(views.map(({ keys, path }) => [keys, () => void navigate({ to: path })])),
  });
  return (
    <div className="flex h-full">
      <a
        href="#main"
        className="sr-only z-50 rounded-md bg-panel px-3 py-2 focus:not-sr-only focus:fixed focus:top-2 focus:left-2"
      >
        Skip to the content
      </a>
      <Navigation views={views} isOpen={isNavOpen} onClose={() => setNavOpen(false)} />
      <div className="flex min-w-0 flex-1 flex-col">
        <header className="flex h-12 shrink-0 items-center gap-2 border-b border-line bg-panel px-3 sm:gap-3 sm:px-5">
          <IconButton
            label="Open the navigation"
            icon={MenuIcon}
            onClick={() => setNavOpen(true)}
            className="inline-flex lg:hidden"
          />
          <button
            type="button"
            onClick={() => setPaletteOpen(true)}
            className="flex h-8 min-w-0 flex-1 items-center gap-2 rounded-md border border-line bg-page px-3 text-left text-xs text-soft hover:border-strong sm:max-w-md"
          >
            <Search size={14} aria-hidden className="shrink-0" />
            <span className="truncate">Paste any id, or search</span>
            <span className="ml-auto hidden items-center gap-1 sm:flex">
              <Kbd>{navigator.platform.startsWith('Mac') ? '⌘' : 'Ctrl'}</Kbd>
              <Kbd>K</Kbd>
            </span>
          </button>
          <div className="ml-auto flex items-center gap-1 sm:gap-2">
            <Connection />
            <IconButton
              label="Keyboard shortcuts"
              icon={CircleHelp}
              onClick={() => setHelpOpen(true)}
              className="hidden sm:inline-flex"
            />
            <Account onSignedOut={onSignedOut} />
          </div>
        </header>
        <OfflineBanner />
        <main id="main" tabIndex={-1} className="min-h-0 flex-1 overflow-y-auto outline-none">
          <Outlet />
        </main>
      </div>
      <FailureToast />
      <Palette isOpen={isPaletteOpen} onClose={() => setPaletteOpen(false)} />
      <Help views={views} isOpen={isHelpOpen} onClose={() => setHelpOpen(false)} />
    </div>
  );
}

function Navigation({
  views,
  isOpen,
  onClose,
}: {
  readonly views: readonly View[];
  readonly isOpen: boolean;
  readonly onClose: () => void;
}) {
  const groups = Map.groupBy(views, ({ group }) => group);
  return (
    <>
      {isOpen ? (
        <button
          type="button"
          aria-label="Close the navigation"
          onClick={onClose}
          className="fixed inset-0 z-30 bg-backdrop lg:hidden"
        />
      ) : null}
      <nav
        aria-label="Views"
        className={cx(
          'fixed inset-y-0 left-0 z-40 w-56 shrink-0 flex-col border-r border-line bg-panel lg:static lg:flex',
          isOpen ? 'flex' : 'hidden',
        )}
      >
        <div className="flex h-12 items-center gap-2.5 px-4">
          <span className="flex size-7 items-center justify-center rounded-md bg-accent text-on-accent">
            <Waves size={16} aria-hidden />
          </span>
          <span className="text-sm font-semibold tracking-tight">Millrace</span>
          <IconButton
            label="Close the navigation"
            icon={X}
            onClick={onClose}
            className="ml-auto inline-flex lg:hidden"
          />
        </div>
        <div className="flex flex-1 flex-col gap-5 overflow-y-auto px-3 py-3">
          {[...groups].map(([group, all]) => (
            <div key={group}>
              <h2 className="px-2 pb-1 text-2xs font-medium text-soft">{group}</h2>
              <ul className="flex flex-col gap-0.5">
                {all.map(({ path, title, icon: Icon, keys }) => (
                  <li key={path}>
                    <Link
                      to={path}
                      onClick={onClose}
                      activeOptions={{ exact: path === '/', includeSearch: false }}
                      className="group flex h-8 items-center gap-2.5 rounded-md px-2 text-soft hover:bg-hover hover:text-text data-[status=active]:bg-accent-wash data-[status=active]:font-medium data-[status=active]:text-accent"
                    >
                      <Icon size={15} aria-hidden />
                      {title}
                      <span className="ml-auto hidden text-2xs text-soft group-hover:inline">
                        {keys}
                      </span>
                    </Link>
                  </li>
                ))}
              </ul>
            </div>
          ))}
        </div>
      </nav>
    </>
  );
}

function Connection() {
  const { state } = useLiveStatus();
  const [tone, text] =
    state === 'open'
      ? ['bg-good', 'Live']
      : state === 'offline'
        ? ['bg-bad', 'Offline']
        : ['bg-warn', 'Connecting'];
  return (
    <span
      role="status"
      className="flex items-center justify-end gap-1.5 px-1 text-xs text-soft sm:min-w-24"
    >
      <span className={cx('size-2 rounded-full', tone, state === 'open' && 'pulse')} />
      <span className="max-sm:sr-only">{text}</span>
    </span>
  );
}

/** Appears after two seconds, so that a restart does not flash. */
function OfflineBanner() {
  const { since } = useLiveStatus();
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    setLate(false);
    if (since === undefined) return undefined;
    const timer = setTimeout(() => setLate(true), 2_000);
    return () => clearTimeout(timer);
  }, [since]);
  if (since === undefined || !isLate) return null;
  return (
    <p role="alert" className="bg-bad-wash px-5 py-1.5 text-xs text-bad">
      No connection since {timeText(new Date(since).toISOString()).slice(0, 8)}. Everything below is
      of that time.
    </p>
  );
}

const themes: readonly {
  readonly theme: Theme;
  readonly title: string;
  readonly icon: typeof Sun;
}[] = [
  { theme: 'light', title: 'Light', icon: Sun },
  { theme: 'dark', title: 'Dark', icon: Moon },
  { theme: 'system', title: 'System', icon: Monitor },
];

function Account({ onSignedOut }: { readonly onSignedOut: () => void }) {
  const { name, scopes, tenant, expiresAt } = useSession();
  const theme = useTheme();
  const { mutate } = useMutation({
    mutationFn: () => call('DELETE /console/session'),
    onSuccess: onSignedOut,
  });
  const item =
    'flex h-8 cursor-default items-center gap-2 rounded-md px-2 text-xs outline-none data-[highlighted]:bg-hover';
  return (
    <Menu.Root>
      <Menu.Trigger className="flex h-8 items-center gap-2 rounded-md px-2 text-xs hover:bg-hover">
        <span
          aria-hidden
          className="flex size-5 items-center justify-center rounded-full bg-accent-wash text-2xs font-semibold text-accent uppercase"
        >
          {name.slice(0, 1)}
        </span>
        <span className="sr-only">Account: </span>
        <span className="max-sm:sr-only sm:max-w-32 sm:truncate">{name}</span>
        <ChevronDown size={13} aria-hidden className="text-soft" />
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Positioner sideOffset={6} align="end" className="z-50">
          <Menu.Popup className="w-64 rounded-lg border border-line bg-panel p-1.5 shadow-float outline-none">
            <div className="px-2 pt-1 pb-2 text-xs">
              <p className="truncate font-medium">{name}</p>
              <p className="text-soft">
                {scopes.join(', ')} · {tenant ?? 'all tenants'}
              </p>
              {expiresAt === undefined ? null : (
                <p className="text-soft">until {timeText(expiresAt).slice(0, -4)}</p>
              )}
            </div>
            <Menu.Separator className="my-1 h-px bg-line" />
            <Menu.RadioGroup value={theme} onValueChange={(value) => setTheme(value as Theme)}>
              {themes.map(({ theme: value, title, icon: Icon }) => (
                <Menu.RadioItem key={value} value={value} className={item}>
                  <Icon size={14} aria-hidden className="text-soft" />
                  {title}
                  <Menu.RadioItemIndicator className="ml-auto text-accent">
                    ●
                  </Menu.RadioItemIndicator>
                </Menu.RadioItem>
              ))}
            </Menu.RadioGroup>
            <Menu.Separator className="my-1 h-px bg-line" />
            <Menu.Item onClick={() => mutate()} className={item}>
              Sign out
            </Menu.Item>
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  );
}

function Help({
  views,
  isOpen,
  onClose,
}: {
  readonly views: readonly View[];
  readonly isOpen: boolean;
  readonly onClose: () => void;
}) {
  const rows: readonly (readonly [string, string])[] = [
    ['Ctrl K', 'Go to a view or to any id (⌘ K on a Mac)'],
    ['/', 'Filter of this view; if it has none, as Ctrl K'],
    ['j k', 'Next and previous row'],
    ['Enter', 'Open the row'],
    ['Esc', 'Close the details'],
    ['l', 'Live on or off, in Events'],
    ['e', 'Waterfall or explanation, in a trace'],
    ['o', 'Fold or unfold the selected row, in a trace'],
    ...views.map(({ keys, title }) => [keys, title] as const),
    ['?', 'This help'],
  ];
  return (
    <Modal isOpen={isOpen} onClose={onClose} title="Keyboard shortcuts">
      <dl className="grid grid-cols-[6rem_1fr] gap-y-2 overflow-y-auto p-4 text-xs">
        {rows.map(([keys, text]) => (
          <div key={keys} className="contents">
            <dt className="flex gap-1">
              {keys.split(' ').map((key) => (
                <Kbd key={key}>{key}</Kbd>
              ))}
            </dt>
            <dd className="text-soft">{text}</dd>
          </div>
        ))}
      </dl>
    </Modal>
  );
}
