/* A program that does nothing: what the start of ours is measured against. */
int
main(void)
{
	return 0;
}
