#!/usr/bin/env bats
# The loss of power: what stores with sync=full are found to be after it, for every moment of a run. `make soak` has longer runs.

load helper

# cut KIND N SAMPLES SEED...
cut_power() {
	local kind=$1 n=$2 samples=$3 seed
	shift 3
	for seed in "$@"; do
		rm -rf cut
		mkdir cut
		run "$TOOLS/powercut" cut "$kind" "$seed" "$n" "$samples"
		[ "$status" -eq 0 ] || fail "seed $seed:" "$output"
		echo "# seed $seed: ${lines[-1]}"
	done
}

@test "a disk store with sync=full has after a loss of power all that was acknowledged, and nothing by half" {
	if [ -n "$SOAK" ]; then
		cut_power disk 60 8 $(seq 1 20) $(od -An -N4 -tu4 /dev/urandom)
	else
		cut_power disk 14 2 1 4
	fi
}

@test "so has one of which a writer was killed between a rename and syncing the directory" {
	cut_power disk 14 0 25
}

@test "so has a sqlite store" {
	if [ -n "$SOAK" ]; then
		cut_power sqlite 40 4 $(seq 1 5) $(od -An -N4 -tu4 /dev/urandom)
	else
		cut_power sqlite 7 1 1
	fi
}

@test "so has one whose first writer was killed between making a directory and syncing the one above" {
	cut_power sqlite 1 0 197
}
