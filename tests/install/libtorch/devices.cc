// Calls a stand-in through tests/install/fake_libtorch.cmake's library: 100 is CUDA's "no device".
extern "C" int devices();

int main() { return devices() == 100 ? 0 : 1; }
