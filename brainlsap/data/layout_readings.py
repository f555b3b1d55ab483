"""What sizes of matrices without names are known to mean, where no order follows."""

# Sizes that tools write for the same parcellation, but from which no order follows.
READINGS = {
    "destrieux160": {
        148: "cortex only (74 regions a side), without the subcortex that it needs",
        150: "cortex with a medial wall on each side, without subcortex",
        152: "cortex with Unknown and Medial_wall on each side (nilearn's labels), "
        "without subcortex",
        162: "148 cortical and 14 subcortical regions (with accumbens), "
        "or 160 regions and two medial walls",
        166: "164 nodes of MRtrix and two medial walls, or 152 labels and 14 "
        "subcortical regions",
        82: "the Desikan parcellation (atlas desikan82)",
        84: "MRtrix's fs_default.txt of the Desikan parcellation (atlas desikan82)",
        85: "MRtrix's fs_default.txt of the Desikan parcellation (atlas desikan82), "
        "unassigned streamlines first",
    },
    "desikan82": {
        68: "cortex only (34 regions a side), without the subcortex that it needs",
        70: "cortex with a corpus callosum on each side, without subcortex",
        72: "cortex with unknown and corpus callosum on each side, without subcortex",
        87: "84 nodes of MRtrix and brain stem or others",
        160: "the Destrieux parcellation (atlas destrieux160)",
        164: "MRtrix's fs_a2009s.txt of the Destrieux parcellation "
        "(atlas destrieux160)",
        165: "MRtrix's fs_a2009s.txt of the Destrieux parcellation "
        "(atlas destrieux160), unassigned streamlines first",
    },
}
