/** The words of the dialog that connects other programs; `docs/mount/` says the same at more length. */
export const ENGLISH_CONNECT = {
  connect: 'Connect',
  connectTitle: 'Connect other programs to the drive',
  driveAddress: 'The address of the drive:',
  loginAs: 'Log in as {0}, with your password.',
  noLogin: 'This drive needs no login.',
  systems: 'Systems',
  windows: 'Windows',
  macos: 'macOS',
  linux: 'Linux',
  android: 'Android',
  ios: 'iPhone, iPad',
  windowsOnceHttp:
    'By default Windows refuses to log in over plain http and to download files over 50 MB. Change both once, in a command prompt as administrator:',
  windowsOnce:
    'By default Windows refuses to download files over 50 MB. Change that once, in a command prompt as administrator:',
  windowsExplorer:
    'Then in Explorer: This PC → Map network drive → Connect to a Web site, and enter the address.',
  windowsCommand: 'Or in a command prompt:',
  windowsLarge: 'Windows itself cannot handle files over 4 GiB. Use rclone with WinFsp for those.',
  macFinder: 'In Finder choose Go → Connect to Server (⌘K), enter the address and log in.',
  inTerminal: 'From a terminal:',
  macRclone:
    'rclone works too, with macFUSE, and keeps its own cache of files. Put your password in place of PASSWORD:',
  linuxFiles: 'In Files (Nautilus), Thunar, Nemo or Caja open:',
  linuxDolphin: 'In Dolphin open:',
  linuxDavfs: 'With davfs2, as a folder for all programs:',
  linuxDavfsEmpty:
    'If every folder looks empty, as with davfs2 1.6 on recent kernels, put “buf_size 1024” into /etc/davfs2/davfs2.conf.',
  linuxRclone: 'With rclone. Put your password in place of PASSWORD:',
  androidApps:
    'These apps speak WebDAV: Material Files, Solid Explorer, Cx File Explorer, FolderSync, and DAVx⁵, which mounts the drive for all apps.',
  iosApps: 'These apps speak WebDAV: Documents, FE File Explorer and Owlfiles. They appear in Files.',
  mobilePlayers: 'VLC, nPlayer, Infuse and Kodi play films from the drive.',
  mobileAddress: 'Enter the address, the user and the password in the app.',
  mobileNeeds:
    'A phone needs an address that other machines can reach, and https; the one above is not of that kind.',
};

export const GERMAN_CONNECT: Readonly<Record<keyof typeof ENGLISH_CONNECT, string>> = {
  connect: 'Verbinden',
  connectTitle: 'Andere Programme mit dem Laufwerk verbinden',
  driveAddress: 'Die Adresse des Laufwerks:',
  loginAs: 'Als {0} mit dem eigenen Passwort anmelden.',
  noLogin: 'Dieses Laufwerk braucht keine Anmeldung.',
  systems: 'Systeme',
  windows: 'Windows',
  macos: 'macOS',
  linux: 'Linux',
  android: 'Android',
  ios: 'iPhone, iPad',
  windowsOnceHttp:
    'Windows verweigert anfangs die Anmeldung über einfaches http und Dateien über 50 MB. Beides einmal ändern, in einer Eingabeaufforderung als Administrator:',
  windowsOnce:
    'Windows verweigert anfangs Dateien über 50 MB. Das einmal ändern, in einer Eingabeaufforderung als Administrator:',
  windowsExplorer:
    'Dann im Explorer: Dieser PC → Netzlaufwerk verbinden → Verbindung mit einer Website herstellen, und die Adresse eingeben.',
  windowsCommand: 'Oder in einer Eingabeaufforderung:',
  windowsLarge: 'Windows selbst kann keine Dateien über 4 GiB. Dafür rclone mit WinFsp verwenden.',
  macFinder: 'Im Finder „Gehe zu → Mit Server verbinden“ (⌘K) wählen, die Adresse eingeben und anmelden.',
  inTerminal: 'In einem Terminal:',
  macRclone:
    'Auch rclone geht, mit macFUSE, und behält Dateien im eigenen Cache. Das eigene Passwort an die Stelle von PASSWORD setzen:',
  linuxFiles: 'In Dateien (Nautilus), Thunar, Nemo oder Caja öffnen:',
  linuxDolphin: 'In Dolphin öffnen:',
  linuxDavfs: 'Mit davfs2, als Ordner für alle Programme:',
  linuxDavfsEmpty:
    'Wenn alle Ordner leer aussehen, wie mit davfs2 1.6 auf neuen Kernels: „buf_size 1024“ in /etc/davfs2/davfs2.conf setzen.',
  linuxRclone: 'Mit rclone. Das eigene Passwort an die Stelle von PASSWORD setzen:',
  androidApps:
    'Diese Apps sprechen WebDAV: Material Files, Solid Explorer, Cx File Explorer, FolderSync und DAVx⁵, das das Laufwerk für alle Apps einbindet.',
  iosApps:
    'Diese Apps sprechen WebDAV: Documents, FE File Explorer und Owlfiles. Sie erscheinen in „Dateien“.',
  mobilePlayers: 'VLC, nPlayer, Infuse und Kodi spielen Filme vom Laufwerk ab.',
  mobileAddress: 'In der App die Adresse, den Namen und das Passwort eingeben.',
  mobileNeeds:
    'Ein Telefon braucht eine Adresse, die andere Geräte erreichen, und https; die obige ist nicht von dieser Art.',
};
