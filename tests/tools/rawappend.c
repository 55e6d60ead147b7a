/* rawappend FILE INPUT: what an append to a file takes at least: open, lock, write what INPUT has (up to 64 KB), close. */
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	static char data[65536];
	int in, out;
	ssize_t n;

	if (argc != 3)
		return 64;
	in = open(argv[2], O_RDONLY | O_CLOEXEC);
	n = read(in, data, sizeof(data));
	out = open(argv[1], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (n < 0 || flock(out, LOCK_EX) < 0 || write(out, data, (size_t)n) != n || close(out) < 0)
		return 74;
	return 0;
}
