#!/bin/sh
# Makes the files behind /, /empty, /1k, /16k, /1m and /text-16k in the folder named, for servers that
# answer from disk.
set -eu
mkdir -p "$1"
printf 'Hello, World!\n' >"$1/hello"
for file in empty:0 1k:1024 16k:16384 1m:1048576; do
    head -c "${file#*:}" /dev/zero | tr '\0' x >"$1/${file%:*}"
done
# 16384 bytes that compress as prose does: words drawn by a generator whose numbers are exact in every awk.
LC_ALL=C awk 'BEGIN {
    count = split("a the of and to in is that for it as was with be by on not he his but at are this have from or " \
        "had an they which one you were her all their there been many more no time when who will into its than only " \
        "some other could these two may then do first any now such like our over even most made after also did " \
        "before must through back years where much your way well down should because each just those people how " \
        "too little state good very make world still own see men work long get here between both life being under " \
        "never day same another know while last might us great old year off come since against go came right used " \
        "take three states himself few house use during without again place around however home small found", words)
    number = 20240601
    for (bytes = 0; bytes < 16384; ) {
        number = number * 16807 % 2147483647
        share = number / 2147483647
        # The square prefers the front of the list, as language does its short words.
        word = words[1 + int(count * share * share)]
        space = ++drawn % 14 ? " " : "\n"
        bytes += length(word) + 1
        printf "%s%s", word, space
    }
}' | head -c 16384 >"$1/text-16k"
