/** The folder that the program was started in. */
export const startFolder = (): string => process.cwd()
