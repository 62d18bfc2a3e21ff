/** The words about moving and copying. */
export const ENGLISH_MOVING = {
  moveTo: 'Move to…',
  copyTo: 'Copy to…',
  moveOne: 'Move “{0}”',
  moveMany: 'Move {0} items',
  copyOne: 'Copy “{0}”',
  copyMany: 'Copy {0} items',
  moveHere: 'Move here',
  copyHere: 'Copy here',
  noFolders: 'There are no folders here.',
  workingOn: '{0} of {1}: {2}',
  andMore: '{0} (and {1} more)',
  takenFile: 'There is a file with this name in the folder.',
  takenOther: 'There is something with this name in the folder; it cannot be replaced.',
  takenForAll: 'Do the same with all others',
};

export const GERMAN_MOVING: Readonly<Record<keyof typeof ENGLISH_MOVING, string>> = {
  moveTo: 'Verschieben …',
  copyTo: 'Kopieren …',
  moveOne: '„{0}“ verschieben',
  moveMany: '{0} Objekte verschieben',
  copyOne: '„{0}“ kopieren',
  copyMany: '{0} Objekte kopieren',
  moveHere: 'Hierher verschieben',
  copyHere: 'Hierher kopieren',
  noFolders: 'Hier gibt es keine Ordner.',
  workingOn: '{0} von {1}: {2}',
  andMore: '{0} (und {1} weitere)',
  takenFile: 'In dem Ordner gibt es schon eine Datei mit diesem Namen.',
  takenOther: 'In dem Ordner gibt es schon etwas mit diesem Namen; es kann nicht ersetzt werden.',
  takenForAll: 'Mit allen anderen ebenso',
};
